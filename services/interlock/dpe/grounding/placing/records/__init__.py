"""What prose, tables and objects of an answer say of the records of its sources, cell by cell."""
