module bugs.test/types

go 1.26.0
