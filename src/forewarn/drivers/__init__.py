"""What does the steps, behind control's `Driver` port: one module for each kind of driver."""
