package shared

// Lists has a parameter of another name than those of the types in between.
type Lists[V any] map[string]List[V]

type List[K any] []K
