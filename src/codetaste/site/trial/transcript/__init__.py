"""The conversations of a trial as data of its page, and when its jobs worked, waited and paid."""
