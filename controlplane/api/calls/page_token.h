// SPDX-License-Identifier: Apache-2.0
// Where a list goes on: at the same revision, behind the last key, with the same filter. Opaque for
// clients. Any thread.
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

// `filter`: everything else that the request says; a token of another request is refused.
std::string MakePageToken(const PagePosition& position, std::string_view filter);
// The start for an empty token; nullopt: not one of ours for this filter.
std::optional<PagePosition> ReadPageToken(const std::string& token, std::string_view filter);

// 0 means 100; never more than 1000.
size_t EffectivePageSize(int32_t page_size);

}  // namespace rocegw::api
