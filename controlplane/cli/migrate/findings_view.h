// SPDX-License-Identifier: Apache-2.0
// View of what a preflight found: each finding with its class and remedy, in lines of 80 columns.
#pragma once

#include <string>

#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::cli {

// Empty if nothing was found.
std::string FindingsText(const admin::v1::Migration& migration);

}  // namespace rocegw::cli
