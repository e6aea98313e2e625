// SPDX-License-Identifier: Apache-2.0
// Position at which a list continues: the same revision, behind the last key, with the same filter.
// Opaque to clients. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controlplane/store/transaction.h"

namespace rocegw::api {

struct PagePosition {
  store::Revision revision = 0;
  std::string last_key;
};

// `filter`: all other fields of the request; a token of another request is refused.
std::string MakePageToken(const PagePosition& position, std::string_view filter);
// Returns the start for an empty token; nullopt: not a token for this filter.
std::optional<PagePosition> ReadPageToken(const std::string& token, std::string_view filter);

// Returns 100 for 0; at most 1000.
size_t EffectivePageSize(int32_t page_size);

}  // namespace rocegw::api
