// SPDX-License-Identifier: Apache-2.0
// Standard methods of admin.v1 for objects of any kind. One thread; blocks like Rpc. Every write
// carries a request id: a write whose answer was lost is repeated once with the same id.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controlplane/cli/client/rpc.h"
#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/message_fields.h"

namespace rocegw::cli {

struct WriteOptions {
  std::string request_id;  // empty: a new one
  bool validate_only = false;
};

struct ObjectList {
  std::vector<MessagePtr> objects;
  int64_t revision = 0;
};

// Change reported by a watch: the current `object`, or the name of a deleted one.
struct Change {
  const google::protobuf::Message* object = nullptr;
  std::string deleted;
  int64_t revision = 0;
};

class ObjectsClient {
 public:
  explicit ObjectsClient(Rpc& rpc) : rpc_(rpc) {}

  CallResult Get(const Kind& kind, const std::string& name, MessagePtr& out);
  // `parent`: "tenants/T" or "gateways/G", as the kind has it; empty: all.
  CallResult List(const Kind& kind, const std::string& parent, const std::string& selector,
                  ObjectList& out);
  // Watches from start_revision on (0: the existing objects first) until on_change returns false or
  // an error; continues after an interruption. `synced`: all objects that existed at the start were
  // reported.
  CallResult Watch(const Kind& kind, const std::string& parent, const std::string& selector,
                   int64_t start_revision, const std::function<bool(const Change&)>& on_change,
                   const std::function<void()>& on_synced);
  CallResult Create(const Kind& kind, const google::protobuf::Message& object,
                    const WriteOptions& options, MessagePtr& out);
  CallResult Update(const Kind& kind, const google::protobuf::Message& object,
                    const std::vector<std::string>& mask, const WriteOptions& options,
                    MessagePtr& out);
  CallResult Delete(const Kind& kind, const std::string& name, const std::string& etag,
                    const WriteOptions& options);

  // Sends another kind of write: adds the request id, and repeats the call if the answer was lost.
  CallResult Write(const std::string& method, google::protobuf::Message& request,
                   const WriteOptions& options, google::protobuf::Message& response);

 private:
  Rpc& rpc_;
};

// Returns a new UUID.
std::string NewRequestId();

}  // namespace rocegw::cli
