"""What wakes the jobs where no daemon runs: launchd's plists and systemd's units."""
