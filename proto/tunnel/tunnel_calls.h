// SPDX-License-Identifier: Apache-2.0
// Calls of a gateway that pass through its agent's tunnel. A question of the tunnel contains the
// request of such a call, and its answer the response; the descriptors of the messages say which
// belong together, so that controller, agent and rocegwctl need no list of the calls. Pure
// functions; any thread.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::tunnel {

struct TunnelCall {
  const google::protobuf::FieldDescriptor* question;  // field of TunnelQuestion with the request
  const google::protobuf::FieldDescriptor* answer;    // field of TunnelAnswer with the response
  const google::protobuf::MethodDescriptor* method;   // unary method of a service of the gateway

  // Returns the method as gRPC names it: "/rocegw.gateway.v1.StateService/ListQps".
  std::string Path() const;
  // Returns the request in the question, and the response in the answer; unset: an empty message.
  const google::protobuf::Message& RequestIn(const fleet::v1::TunnelQuestion& question) const;
  google::protobuf::Message& RequestIn(fleet::v1::TunnelQuestion& question) const;
  const google::protobuf::Message& ResponseIn(const fleet::v1::TunnelAnswer& answer) const;
  google::protobuf::Message& ResponseIn(fleet::v1::TunnelAnswer& answer) const;
};

// Returns the call of a question; nullptr: it is for the agent, a stream, or newer than this
// program.
const TunnelCall* CallOf(const fleet::v1::TunnelQuestion& question);
// Returns the call with that response; nullptr: none.
const TunnelCall* CallWith(const google::protobuf::Descriptor* response);

}  // namespace rocegw::tunnel
