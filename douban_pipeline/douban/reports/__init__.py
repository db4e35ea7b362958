"""What people read: reports, health, precision, and the library judged again under other rules."""
