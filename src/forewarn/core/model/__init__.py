"""The objects of forewarn as frozen values; times are aware and in UTC."""
