"""Questions of other products, and tables with the columns that they name."""
