"""What a request asks for: its route, version, headers and conditions."""
