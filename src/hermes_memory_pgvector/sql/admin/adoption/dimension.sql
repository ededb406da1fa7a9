-- the dimension of an earlier installation's vectors; negative when its column has none
SELECT atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'embedding' AND NOT attisdropped
