"""The guest endpoint: Azure's metadata service, answered from memory."""
