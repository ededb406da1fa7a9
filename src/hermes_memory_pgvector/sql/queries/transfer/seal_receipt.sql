-- Seals a receipt that was brought here.
UPDATE erasure_receipts SET digest = %(digest)s WHERE id = %(id)s AND digest = '';
