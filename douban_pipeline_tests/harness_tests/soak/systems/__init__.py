"""What must hold of the soak of the systems beside Douban's, without running one."""
