"""Tests of a real `forewarn serve`."""
