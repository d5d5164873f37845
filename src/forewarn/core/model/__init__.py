"""The things of forewarn as frozen values, one idea to a module; times are aware and UTC."""
