-- kernel_sealed.lua: note that records are sealed, up to the one of this number and link. It stands behind kernel_noting.lua.
-- KEYS[1] kernel hash (kernel_decision.lua has its fields)
-- ARGV[1] number · ARGV[2] link
-- reply   {1} noted · {0} this store does not have that record

return {noted(KEYS[1], ARGV[1], ARGV[2])}
