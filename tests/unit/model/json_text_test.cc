// SPDX-License-Identifier: Apache-2.0
// Compared with protobuf's own conversion, for random requests of every method.
#include "controlplane/model/json_text.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/api_methods.h"
#include "tests/support/random.h"

namespace rocegw::model {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using rocegw::testing::Random;

constexpr int kDeepest = 4;

std::string Text(Random& random) {
  static const std::string kPieces[] = {"a",  "Z",    "0", "-", "/",    "\"", "\\",     "\n",
                                        "\t", "\x01", "<", ">", "\x7f", " ",  "\u00e9", "\u4e2d"};
  std::string text;
  for (size_t left = random.Below(6); left > 0; --left)
    text += kPieces[random.Below(std::size(kPieces))];
  return text;
}

void Fill(Message& message, Random& random, int depth);

void FillOne(Message& message, const FieldDescriptor& field, Random& random, int depth) {
  const auto& reflection = *message.GetReflection();
  const bool many = field.is_repeated();
  const auto set = [&](auto single, auto add, auto value) {
    many ? (reflection.*add)(&message, &field, value)
         : (reflection.*single)(&message, &field, value);
  };
  using R = google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = Text(random);
      many ? reflection.AddString(&message, &field, text)
           : reflection.SetString(&message, &field, text);
      return;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return set(&R::SetBool, &R::AddBool, random.Coin());
    case FieldDescriptor::CPPTYPE_ENUM:
      return set(&R::SetEnumValue, &R::AddEnumValue, static_cast<int>(random.Below(8)));
    case FieldDescriptor::CPPTYPE_INT32:
      return set(&R::SetInt32, &R::AddInt32, random.Value<int32_t>());
    case FieldDescriptor::CPPTYPE_UINT32:
      return set(&R::SetUInt32, &R::AddUInt32, random.Value<uint32_t>());
    case FieldDescriptor::CPPTYPE_INT64:
      return set(&R::SetInt64, &R::AddInt64, random.Value<int64_t>());
    case FieldDescriptor::CPPTYPE_UINT64:
      return set(&R::SetUInt64, &R::AddUInt64, random.Value<uint64_t>());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(many ? *reflection.AddMessage(&message, &field)
                       : *reflection.MutableMessage(&message, &field),
                  random, depth + 1);
    default:
      return;
  }
}

void Fill(Message& message, Random& random, int depth) {
  const auto& descriptor = *message.GetDescriptor();
  const std::string& name = descriptor.full_name();
  const auto& reflection = *message.GetReflection();
  if (name == "google.protobuf.Timestamp" || name == "google.protobuf.Duration") {
    reflection.SetInt64(&message, descriptor.FindFieldByNumber(1),
                        static_cast<int64_t>(random.Below(2'000'000'000)));
    const int32_t parts[] = {0, 500'000'000, 1'000, 7};
    reflection.SetInt32(&message, descriptor.FindFieldByNumber(2), parts[random.Below(4)]);
    return;
  }
  if (name == "google.protobuf.FieldMask") {
    for (const char* path : {"spec.quota", "spec.ready_qps", "display_name"}) {
      if (random.Coin()) reflection.AddString(&message, descriptor.FindFieldByNumber(1), path);
    }
    return;
  }
  if (depth > kDeepest) return;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (random.Below(3) == 0) continue;
    // The order of map entries is unspecified.
    size_t count = 1;
    if (field.is_repeated() && !field.is_map()) count = random.Below(4);
    for (; count > 0; --count) FillOne(message, field, random, depth);
  }
}

TEST(JsonText, RandomRequests_AreWrittenAsProtobufDoes) {
  Random random(rocegw::testing::TestSeed(20261121));
  auto* const factory = google::protobuf::MessageFactory::generated_factory();
  size_t written = 0;
  for (const auto* method : rocegw::testing::ApiMethods()) {
    for (int round = 0; round < 20; ++round) {
      const std::unique_ptr<Message> request(factory->GetPrototype(method->input_type())->New());
      Fill(*request, random, 0);
      std::string expected;
      if (!google::protobuf::util::MessageToJsonString(*request, &expected).ok()) continue;
      ASSERT_EQ(JsonText(*request), expected) << method->full_name();
      ++written;
    }
  }
  EXPECT_GT(written, 900u);
}

TEST(JsonText, Maps_AreInTheOrderOfTheirKeys) {
  types::v1::Gateway gateway;
  (*gateway.mutable_meta()->mutable_labels())["b"] = "2";
  (*gateway.mutable_meta()->mutable_labels())["a"] = "1\n";
  EXPECT_EQ(JsonText(gateway), R"({"meta":{"labels":{"a":"1\n","b":"2"}}})");
}

}  // namespace
}  // namespace rocegw::model
