# Every step once, in a few seconds.
