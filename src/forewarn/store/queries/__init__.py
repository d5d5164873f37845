"""What a snapshot or a transaction is made of: a part for each reader, with what that reader may change."""
