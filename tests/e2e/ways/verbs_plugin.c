/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in that is linked with libibverbs as usual; loaded with RTLD_DEEPBIND it looks there
 * before it looks at what was preloaded.
 */
#include "tests/e2e/ways/verbs_table.h"

void fill_verbs_table(struct verbs_table* table);
void fill_verbs_table(struct verbs_table* table) {
#define VERBS_FILL(name, version) table->name##_ = &name;
  VERBS_FUNCTIONS(VERBS_FILL)
#undef VERBS_FILL
}
