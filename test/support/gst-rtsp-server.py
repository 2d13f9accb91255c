"""Debian's GStreamer RTSP server in front of one H.264 file: an RTSP implementation that is not ours. Prints its port."""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    f'( filesrc location="{sys.argv[1]}" ! qtdemux ! h264parse config-interval=-1 ! rtph264pay name=pay0 pt=96 )'
)
factory.set_shared(False)
server.get_mount_points().add_factory("/cam", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
