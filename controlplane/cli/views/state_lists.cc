// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/state_lists.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

namespace rocegw::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

template <typename Response, std::string (*kView)(const Response&, const ViewOptions&)>
constexpr StateList ListOf(std::string_view plural, std::string_view singular) {
  return {plural, singular,
          []() -> std::unique_ptr<Message> { return std::make_unique<Response>(); },
          [](const Message& list, const ViewOptions& options) {
            return kView(static_cast<const Response&>(list), options);
          }};
}

constexpr StateList kLists[] = {
    ListOf<gateway::v1::ListSessionsResponse, SessionsView>("sessions", "session"),
    ListOf<gateway::v1::ListQpsResponse, QpsView>("qps", "qp"),
    ListOf<gateway::v1::ListConnectionsResponse, ConnectionsView>("connections", "connection"),
    ListOf<gateway::v1::ListChannelsResponse, ChannelsView>("channels", "channel"),
    ListOf<gateway::v1::ListSrqsResponse, SrqsView>("srqs", "srq"),
    ListOf<gateway::v1::ListMrsResponse, MrsView>("mrs", "mr"),
};

}  // namespace

std::span<const StateList> StateLists() { return kLists; }

const StateList* FindStateList(std::string_view word) {
  const auto* const found = std::ranges::find_if(
      kLists, [&](const StateList& list) { return word == list.plural || word == list.singular; });
  return found == std::end(kLists) ? nullptr : found;
}

std::vector<const Message*> RowsOf(const Message& list) {
  std::vector<const Message*> rows;
  for (int i = 0; i < list.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = list.GetDescriptor()->field(i);
    if (!field->is_repeated() || field->message_type() == nullptr) continue;
    const int count = list.GetReflection()->FieldSize(list, field);
    for (int row = 0; row < count; ++row)
      rows.push_back(&list.GetReflection()->GetRepeatedMessage(list, field, row));
  }
  return rows;
}

std::string NameOfRow(const Message& row) {
  return row.GetReflection()->GetString(row, row.GetDescriptor()->FindFieldByName("name"));
}

}  // namespace rocegw::cli
