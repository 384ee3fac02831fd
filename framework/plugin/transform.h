// Transform, TransformStream: a score transform made by a plugin; contracts of
// the calls in <mulligan/transform.h>.
#pragma once

#include <mulligan/transform.h>

#include <cmath>
#include <memory>
#include <span>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Transform : public PluginInstance<mlg_transform_table> {
 public:
  using PluginInstance::PluginInstance;

  // Most biases of a proposal.
  int biases() const { return table().biases; }

  // One stream of tokens. Must not outlive its Transform. A call that fails, or a proposal that breaks its contract, throws
  // run_error that names the plugin.
  class Stream {
   public:
    Stream(const Transform& transform, const mlg_transform_text& text) : transform_(transform), text_(text) {
      transform_.call(transform_.table().open, &text_, &stream_);
    }
    ~Stream() { transform_.table().close(transform_.instance(), stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void begin(std::int64_t place, std::int32_t token) {
      transform_.call(transform_.table().begin, stream_, place, token);
    }
    // Valid until the next call.
    std::span<const mlg_bias> propose(std::int64_t place) {
      std::uint32_t count = 0;
      transform_.call(transform_.table().propose, stream_, place, proposal_, &count);
      transform_.require_sound({proposal_, count}, text_);
      return {proposal_, count};
    }
    void observe(std::int64_t place, std::int32_t token) {
      transform_.call(transform_.table().observe, stream_, place, token);
    }

   private:
    const Transform& transform_;
    mlg_transform_text text_;
    void* stream_ = nullptr;
    mlg_bias proposal_[MLG_TRANSFORM_BIASES] = {};
  };

  std::unique_ptr<Stream> open(const mlg_transform_text& text) const {
    return std::make_unique<Stream>(*this, text);
  }

 private:
  void require_sound(std::span<const mlg_bias> proposal, const mlg_transform_text& text) const;
};

}  // namespace mulligan
