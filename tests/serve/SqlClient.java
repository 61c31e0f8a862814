// What a tool does by JDBC: metadata, a prepared question, its notice. Run by test_sqlport.py.

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

public class SqlClient {
  public static void main(String[] told) throws Exception {
    Properties who = new Properties();
    who.put("user", told[1]);
    who.put("password", told[2]);
    who.put("options", "-c lastbit.epsilon=0.5");
    try (Connection line = DriverManager.getConnection(told[0], who)) {
      DatabaseMetaData known = line.getMetaData();
      ResultSet tables = known.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"});
      while (tables.next()) {
        System.out.println("tables: " + tables.getString(3) + " " + tables.getString(4));
      }
      List<String> columns = new ArrayList<>();
      ResultSet column = known.getColumns(null, "public", "visits", "%");
      while (column.next()) {
        columns.add(column.getString(4) + " " + column.getString(6));
      }
      System.out.println("columns: " + String.join(", ", columns));
      int keys = 0;
      for (ResultSet found : List.of(
          known.getPrimaryKeys(null, "public", "visits"),
          known.getImportedKeys(null, "public", "visits"),
          known.getIndexInfo(null, "public", "visits", false, false))) {
        while (found.next()) {
          keys++;
        }
      }
      System.out.println("keys: " + keys);
      known.getSchemas();
      known.getCatalogs();
      known.getTypeInfo();
      PreparedStatement asked = line.prepareStatement(told[3].replace("10", "?"));
      asked.setDouble(1, 10);
      ResultSet rows = asked.executeQuery();
      while (rows.next()) {
        System.out.println("row: " + rows.getLong(1) + " " + rows.getString(2));
      }
      System.out.println("notice: " + asked.getWarnings().getMessage());
    }
  }
}
