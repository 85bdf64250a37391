/* thumbnail.c: a PNG file in, a smaller one out, by libpng, which parses what may be
 * hostile where it can do no harm.
 *
 *   knit-sandbox run --module ./thumbnail.so --call thumbnail --input @photo.png >small.png
 */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include <knit/task.h>

enum { SIDE = 128, SIDE_MAX = 16384 };

static int
fail(struct knit_call *call, const char *what, png_image *image)
{
	knit_fail(call, "ImageError", "%s", what);
	knit_fail_cause(call, "PngError", "%s", image->message);
	png_image_free(image);
	return -1;
}

/* The mean of the source pixels that fall on each one. */
static void
shrink(const uint8_t *from, uint32_t fw, uint32_t fh, uint8_t *to, uint32_t tw, uint32_t th)
{
	for (uint32_t y = 0; y < th; y++) {
		uint32_t y0 = (uint32_t)((uint64_t)y * fh / th);
		uint32_t y1 = (uint32_t)(((uint64_t)y + 1) * fh / th);

		for (uint32_t x = 0; x < tw; x++) {
			uint32_t x0 = (uint32_t)((uint64_t)x * fw / tw);
			uint32_t x1 = (uint32_t)(((uint64_t)x + 1) * fw / tw);
			uint64_t sum[4] = { 0 }, n = (uint64_t)(y1 - y0) * (x1 - x0);

			for (uint32_t v = y0; v < y1; v++)
				for (uint32_t u = x0; u < x1; u++)
					for (int c = 0; c < 4; c++)
						sum[c] += from[4 * ((size_t)v * fw + u) + c];
			for (int c = 0; c < 4; c++)
				*to++ = (uint8_t)(sum[c] / n);
		}
	}
}

/* At most SIDE on its longer side; a smaller image keeps its size. */
KNIT_TASK(thumbnail)
{
	png_image image = { .version = PNG_IMAGE_VERSION };
	uint32_t w, h, side;
	uint8_t *pixels, *small, *out;
	size_t n, out_n = 0;
	const void *bytes = knit_arg_bytes(call, &n);

	if (!bytes)
		return -1;
	if (!png_image_begin_read_from_memory(&image, bytes, n))
		return fail(call, "the argument is no PNG file", &image);
	if (image.width > SIDE_MAX || image.height > SIDE_MAX) {
		png_image_free(&image);
		return knit_fail(call, "ImageError", "%u by %u pixels are too many",
		    image.width, image.height);
	}
	image.format = PNG_FORMAT_RGBA;
	w = image.width;
	h = image.height;
	side = w > h ? w : h;
	pixels = knit_alloc(call, PNG_IMAGE_SIZE(image));
	if (!pixels || !png_image_finish_read(&image, NULL, pixels, 0, NULL))
		return fail(call, "the PNG file is damaged", &image);
	if (side > SIDE) {
		image.width = w * SIDE / side ? w * SIDE / side : 1;
		image.height = h * SIDE / side ? h * SIDE / side : 1;
	}
	small = knit_alloc(call, PNG_IMAGE_SIZE(image));
	if (!small)
		return -1;
	shrink(pixels, w, h, small, image.width, image.height);
	out_n = PNG_IMAGE_PNG_SIZE_MAX(image);
	out = knit_result_reserve(call, KNIT_BYTES, out_n);
	if (!out)
		return -1;
	if (!png_image_write_to_memory(&image, out, &out_n, 0, small, 0, NULL))
		return fail(call, "the thumbnail cannot be written", &image);
	return knit_result_commit(call, out_n);
}
