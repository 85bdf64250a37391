/* A compiler message would carry the file's first line out. */
#include "/etc/shadow"

int
main(void)
{
	return 0;
}
