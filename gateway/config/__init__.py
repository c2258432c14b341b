"""Reading the configuration file: text to located tree to settings to catalogue."""
