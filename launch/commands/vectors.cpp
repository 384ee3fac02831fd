// mulligan vectors pack|unpack|show
