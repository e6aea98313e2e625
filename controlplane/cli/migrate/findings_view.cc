// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/migrate/findings_view.h"

#include "controlplane/cli/views/wrapped.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::cli {

std::string FindingsText(const admin::v1::Migration& migration) {
  std::string text;
  for (const admin::v1::PreflightFinding& found : migration.findings()) {
    text += Wrapped(found.class_() + ": " + found.subject() + ": " + found.text(), "");
    if (!found.remedy().empty()) text += Wrapped("remedy: " + found.remedy(), "        ");
  }
  return text;
}

}  // namespace rocegw::cli
