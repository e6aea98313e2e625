// SPDX-License-Identifier: Apache-2.0
// Hash of the texts of a migration. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace rocegw::migration {

// Returns "sha256:" and 64 hexadecimal digits.
std::string HashText(std::string_view text);

}  // namespace rocegw::migration
