"""Tests of `bench`. Nothing here depends on the machine's clock."""
