// SPDX-License-Identifier: Apache-2.0
// The standard methods of admin.v1 for objects of any kind. One thread; blocks as Rpc does.
// Every write carries a request id: what was lost on the way is repeated with the same id, once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controlplane/cli/client/rpc.h"
#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/message_fields.h"

namespace rocegw::cli {

struct WriteOptions {
  std::string request_id;  // empty: a fresh one
  bool validate_only = false;
};

struct ObjectList {
  std::vector<MessagePtr> objects;
  int64_t revision = 0;
};

// One change that a watch tells: `object` as it is now, or the name of one that is gone.
struct Change {
  const google::protobuf::Message* object = nullptr;
  std::string deleted;
  int64_t revision = 0;
};

class ObjectsClient {
 public:
  explicit ObjectsClient(Rpc& rpc) : rpc_(rpc) {}

  CallResult Get(const Kind& kind, const std::string& name, MessagePtr& out);
  // parent: "tenants/T", empty: of all tenants.
  CallResult List(const Kind& kind, const std::string& parent, const std::string& selector,
                  ObjectList& out);
  // From start_revision on (0: what is there first) until on_change says false or it fails; goes on
  // by itself after an interruption. synced: all that was there at the start has been told.
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

  // A write of another kind: gives the request its id, repeats it when the answer was lost.
  CallResult Write(const std::string& method, google::protobuf::Message& request,
                   const WriteOptions& options, google::protobuf::Message& response);

 private:
  Rpc& rpc_;
};

// A fresh UUID.
std::string NewRequestId();

}  // namespace rocegw::cli
