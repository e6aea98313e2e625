// SPDX-License-Identifier: Apache-2.0
// Which calls of a gateway pass through a tunnel.
#include "proto/tunnel/tunnel_calls.h"

#include <gtest/gtest.h>

#include <set>

#include "rocegw/gateway/v1/debug.pb.h"
#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw {
namespace {

using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;

TEST(TunnelCalls, QuestionAndAnswerOfACall_AreFoundByTheirMessages) {
  TunnelQuestion question;
  question.mutable_list_srqs()->set_page_size(7);
  const tunnel::TunnelCall* const call = tunnel::CallOf(question);
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->Path(), "/rocegw.gateway.v1.StateService/ListSrqs");
  EXPECT_EQ(call->RequestIn(std::as_const(question)).ByteSizeLong(),
            question.list_srqs().ByteSizeLong());
  TunnelAnswer answer;
  gateway::v1::ListSrqsResponse response;
  response.set_next_page_token("next");
  call->ResponseIn(answer).CopyFrom(response);
  EXPECT_EQ(answer.answer_case(), TunnelAnswer::kSrqs);
  EXPECT_EQ(answer.srqs().next_page_token(), "next");
  EXPECT_EQ(tunnel::CallWith(gateway::v1::ListSrqsResponse::descriptor()), call);
}

// Fails if a question for the gateway has no method or no answer: the agent would refuse it.
TEST(TunnelCalls, EveryQuestionForTheGateway_HasACall) {
  const std::set<std::string> of_the_agent_or_streams = {
      "grant", "cancel", "capture", "probe", "migration_call", "replace_gateway"};
  const auto* const oneof = TunnelQuestion::descriptor()->FindOneofByName("question");
  ASSERT_NE(oneof, nullptr);
  for (int i = 0; i < oneof->field_count(); ++i) {
    const auto* const field = oneof->field(i);
    TunnelQuestion question;
    if (field->message_type() != nullptr)
      question.GetReflection()->MutableMessage(&question, field);
    const bool other = of_the_agent_or_streams.contains(std::string(field->name()));
    EXPECT_EQ(tunnel::CallOf(question) == nullptr, other) << field->name();
  }
}

// A call is found by the types of its messages, so two calls must not share one.
TEST(TunnelCalls, NoTwoCalls_ShareAMessageType) {
  std::set<const google::protobuf::Descriptor*> of_fields;
  for (const auto* const oneof : {TunnelQuestion::descriptor()->FindOneofByName("question"),
                                  TunnelAnswer::descriptor()->FindOneofByName("answer")}) {
    ASSERT_NE(oneof, nullptr);
    for (int i = 0; i < oneof->field_count(); ++i) {
      const auto* const type = oneof->field(i)->message_type();
      EXPECT_TRUE(type == nullptr || of_fields.insert(type).second) << oneof->field(i)->full_name();
    }
  }
  std::set<const google::protobuf::Descriptor*> of_methods;
  for (const auto* const file : {gateway::v1::GetStatusRequest::descriptor()->file(),
                                 gateway::v1::ExplainRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const auto* const method = file->service(s)->method(m);
        for (const auto* const type : {method->input_type(), method->output_type()}) {
          EXPECT_TRUE(!of_fields.contains(type) || of_methods.insert(type).second)
              << method->full_name();
        }
      }
    }
  }
  EXPECT_GE(of_methods.size(), 26u) << "requests and responses of the calls";
}

TEST(TunnelCalls, AQuestionOfANewerController_HasNone) {
  TunnelQuestion question;
  question.set_id(1);
  question.GetReflection()->MutableUnknownFields(&question)->AddLengthDelimited(99)->append("new");
  EXPECT_EQ(tunnel::CallOf(question), nullptr);
}

}  // namespace
}  // namespace rocegw
