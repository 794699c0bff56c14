"""The image, the compose file, the unit and the chart."""
