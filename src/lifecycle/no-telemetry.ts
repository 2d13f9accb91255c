/**
 * Imported before anything else by every file that starts a process, and by those that load ONNX Runtime or start threads that do:
 * its library reports to its maker, and writes a number for the machine into the home folder, unless this stands in the environment
 * when it is loaded. Nothing leaves the plant unless its owner asks for it: `ORT_DISABLE_TELEMETRY=0` is his word, and stays.
 *
 * In a worker thread it does nothing: `process.env` is a copy there, which native code does not see.
 */
process.env['ORT_DISABLE_TELEMETRY'] ||= '1'
