--- What holds where an option is not given. Kept apart from the public table, which modules
-- that are used by it cannot require.
return { backend = "auto" }
