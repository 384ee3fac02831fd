// mulligan merge
