// SPDX-License-Identifier: Apache-2.0
#include "proto/tunnel/tunnel_calls.h"

#include <vector>

#include "rocegw/gateway/v1/debug.pb.h"
#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw::tunnel {
namespace {

using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

// Returns the field of the message that contains a message of the type; nullptr: none.
const FieldDescriptor* FieldOf(const Descriptor& message, const Descriptor* type) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor* const field = message.field(i);
    if (field->message_type() == type) return field;
  }
  return nullptr;
}

std::vector<TunnelCall> FindCalls() {
  std::vector<TunnelCall> calls;
  for (const FileDescriptor* const file : {gateway::v1::GetStatusRequest::descriptor()->file(),
                                           gateway::v1::ExplainRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const ServiceDescriptor* const service = file->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        const MethodDescriptor* const method = service->method(m);
        const FieldDescriptor* const question =
            FieldOf(*TunnelQuestion::descriptor(), method->input_type());
        const FieldDescriptor* const answer =
            FieldOf(*TunnelAnswer::descriptor(), method->output_type());
        if (question != nullptr && answer != nullptr && !method->server_streaming())
          calls.push_back({question, answer, method});
      }
    }
  }
  return calls;
}

const std::vector<TunnelCall>& Calls() {
  static const std::vector<TunnelCall> calls = FindCalls();
  return calls;
}

}  // namespace

std::string TunnelCall::Path() const {
  return "/" + std::string(method->service()->full_name()) + "/" + std::string(method->name());
}

const Message& TunnelCall::RequestIn(const TunnelQuestion& in) const {
  return in.GetReflection()->GetMessage(in, question);
}

Message& TunnelCall::RequestIn(TunnelQuestion& in) const {
  return *in.GetReflection()->MutableMessage(&in, question);
}

const Message& TunnelCall::ResponseIn(const TunnelAnswer& in) const {
  return in.GetReflection()->GetMessage(in, answer);
}

Message& TunnelCall::ResponseIn(TunnelAnswer& in) const {
  return *in.GetReflection()->MutableMessage(&in, answer);
}

const TunnelCall* CallOf(const TunnelQuestion& question) {
  for (const TunnelCall& call : Calls()) {
    if (question.GetReflection()->HasField(question, call.question)) return &call;
  }
  return nullptr;
}

const TunnelCall* CallWith(const Descriptor* response) {
  for (const TunnelCall& call : Calls()) {
    if (call.method->output_type() == response) return &call;
  }
  return nullptr;
}

}  // namespace rocegw::tunnel
