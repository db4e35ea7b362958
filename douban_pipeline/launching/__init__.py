"""What launches runs and looks after their history: the chain as a job, sensors, schedules, pools."""
