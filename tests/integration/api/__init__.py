"""Tests of the operator API over HTTP."""
