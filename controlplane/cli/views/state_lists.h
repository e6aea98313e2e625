// SPDX-License-Identifier: Apache-2.0
// Lists of a gateway's objects that rocegwctl shows: the words for each, its message and its table.
// A new list is one entry. Pure functions.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/cli/views/state_views.h"

namespace rocegw::cli {

struct StateList {
  std::string_view plural;  // also the name of its file in a dump
  std::string_view singular;
  // Returns an empty response of the gateway's call.
  std::unique_ptr<google::protobuf::Message> (*make)();
  std::string (*view)(const google::protobuf::Message& list, const ViewOptions& options);
};

std::span<const StateList> StateLists();
// Returns the list with that word, singular or plural; nullptr: none.
const StateList* FindStateList(std::string_view word);

// Returns the rows of a list's response; each has a field `name`.
std::vector<const google::protobuf::Message*> RowsOf(const google::protobuf::Message& list);
std::string NameOfRow(const google::protobuf::Message& row);

}  // namespace rocegw::cli
