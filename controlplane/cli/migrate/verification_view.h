// SPDX-License-Identifier: Apache-2.0
// View of a verification: which transport nodes use, and which one their states stand for.
#pragma once

#include <string>

#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::cli {

// `limit`: characters per line, 0: none.
std::string VerificationText(const admin::v1::VerifyMigrationResponse& response, size_t limit);

// Returns the exit status: 10 if a node uses another transport than its state says, or its
// configuration or data are wrong; 8 if a node gave no answer that decides.
int VerificationCode(const admin::v1::VerifyMigrationResponse& response);

}  // namespace rocegw::cli
