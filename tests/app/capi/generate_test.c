/* SPDX-License-Identifier: Apache-2.0
 * generate_test.c: qrtool_generate fills places of any strides with the same numbers, and refuses
 * what it cannot make. */
#include "expect.h"

static qrtool_context* context = NULL;

static int generate(const char* kind, struct array* a, const qrtool_generate_options* options) {
  qrtool_matrices shape = {0};
  const qrtool_place out = place(a);
  shape.type = a->type;
  shape.count = a->count;
  shape.rows = a->rows;
  shape.columns = a->columns;
  return qrtool_generate(context, kind, &shape, options, &out);
}

static void fill_in_all_orders(const char* kind, int type) {
  struct array packed = new_array(type, 5, 7, 4, BY_ROWS);
  qrtool_generate_options seeds = {0};
  seeds.size = sizeof seeds;
  seeds.seed = 3;
  EXPECT(generate(kind, &packed, &seeds) == QRTOOL_OK);
  for (int order = BY_COLUMNS; order < ORDERS; ++order) {
    struct array a = new_array(type, 5, 7, 4, order);
    EXPECT(generate(kind, &a, &seeds) == QRTOOL_OK);
    EXPECT(have_same_entries(&a, &packed));
    EXPECT(keeps_its_padding(&a));
    free_array(&a);
  }
  free_array(&packed);
}

static void change_by_options(void) {
  struct array usual = new_array(QRTOOL_FLOAT64, 2, 6, 3, BY_ROWS),
               other = copy_of(&usual, BY_ROWS);
  qrtool_generate_options o = {0};
  o.size = sizeof o;
  EXPECT(generate("offset", &usual, NULL) == QRTOOL_OK);
  o.cond = 1e6;
  EXPECT(generate("offset", &other, &o) == QRTOOL_OK && have_same_entries(&usual, &other));
  o.cond = 10;
  EXPECT(generate("offset", &other, &o) == QRTOOL_OK && !have_same_entries(&usual, &other));
  o.cond = 0;
  o.seed = 1;
  EXPECT(generate("offset", &other, &o) == QRTOOL_OK && !have_same_entries(&usual, &other));
  /* Each second matrix is zero. */
  EXPECT(generate("gauss+zero", &other, &o) == QRTOOL_OK);
  EXPECT(part(&other, 0, 0, 0, 0) != 0 && part(&other, 1, 0, 0, 0) == 0);
  free_array(&usual);
  free_array(&other);
}

static void expect_refused(int code, const char* word) {
  EXPECT(code == QRTOOL_BAD_CALL);
  EXPECT(strstr(qrtool_error(), word) != NULL);
}

static void refuse(void) {
  struct array a = new_array(QRTOOL_FLOAT64, 1, 4, 3, BY_ROWS), none = a, twice = a;
  qrtool_generate_options o = {0};
  qrtool_matrices shape = {0};
  const qrtool_place out = place(&a);
  o.size = sizeof o;
  none.first = NULL;
  twice.row_stride = 0;
  expect_refused(generate("gaus", &a, NULL), "did you mean 'gauss'?");
  expect_refused(generate("gauss+wrong", &a, NULL), "'wrong'; it may be gauss, uniform");
  expect_refused(generate("", &a, NULL), "unknown kind");
  expect_refused(generate(NULL, &a, NULL), "kind is NULL");
  expect_refused(generate("gauss", &none, NULL), "data is NULL");
  expect_refused(generate("gauss", &twice, NULL), "share memory");
  for (int i = 0; i < 3; ++i) {
    o.cond = i == 0 ? 0.5 : i == 1 ? (double)NAN : (double)INFINITY;
    expect_refused(generate("cond", &a, &o), "cond");
  }
  o.cond = 0;
  o.stream = &a;
  expect_refused(generate("gauss", &a, &o), "stream");
  expect_refused(qrtool_generate(context, "gauss", NULL, NULL, &out), "NULL");
  shape.rows = -1;
  expect_refused(qrtool_generate(context, "gauss", &shape, NULL, &out), "negative");
  EXPECT(keeps_its_padding(&a) && part(&a, 0, 0, 0, 0) != 0);
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT(memcmp(place_in(&a, 0, i / 3, i % 3), place_in(&a, 0, 0, 0), 8) == 0); /* poison */
  }
  free_array(&a);
}

static int answers = 0;
static int stop_at_second(void* unused) {
  (void)unused;
  return ++answers < 2;
}

static void stop(void) {
  qrtool_context_options options = {0};
  struct array a = new_array(QRTOOL_FLOAT32, 40, 512, 512, BY_ROWS);
  options.size = sizeof options;
  options.device = "cpu";
  options.keep_going = stop_at_second;
  qrtool_close(context);
  EXPECT(qrtool_open(&options, &context) == QRTOOL_OK);
  EXPECT(generate("integers", &a, NULL) == QRTOOL_STOPPED);
  free_array(&a);
}

int main(void) {
  int kinds = 0;
  EXPECT(qrtool_open(NULL, &context) == QRTOOL_OK);
  for (; qrtool_kind_name(kinds)[0] != '\0'; ++kinds)
    for (int type = QRTOOL_FLOAT64; type <= QRTOOL_COMPLEX64; ++type)
      fill_in_all_orders(qrtool_kind_name(kinds), type);
  EXPECT(kinds > 20 && strcmp(qrtool_kind_name(0), "gauss") == 0);
  EXPECT(qrtool_kind_name(-1)[0] == '\0' && qrtool_kind_name(1 << 30)[0] == '\0');
  change_by_options();
  refuse();
  stop();
  qrtool_close(context);
  return wrong_claims > 0;
}
