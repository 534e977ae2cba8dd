"""Builders, comparisons and small designs that tests of several rooms share."""
