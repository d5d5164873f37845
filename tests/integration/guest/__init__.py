"""Tests of the guest endpoint over real sockets."""
