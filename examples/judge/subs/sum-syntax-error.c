int
main(void)
{
	return 6
}
