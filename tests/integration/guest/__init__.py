"""The guest endpoint: documents, approvals, connections and who is who."""
